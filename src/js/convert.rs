//! Documents to JavaScript values and back.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use wasm_bindgen::JsValue;

use crate::document;
use crate::error::{Error, ErrorCode, Result};

/// A document as a plain value: objects, arrays, numbers, `null`. A number past 2^53 is `NUMBER_TOO_LARGE`, never rounded.
pub(super) fn to_js<T: Serialize + ?Sized>(document: &T) -> Result<JsValue> {
    let serializer = serde_wasm_bindgen::Serializer::json_compatible();
    document.serialize(&serializer).map_err(|error| {
        let text = error.to_string();
        if text.contains("can't be represented as a JavaScript number") {
            Error::new(ErrorCode::NumberTooLarge, format!("a number is past 2^53 and would be rounded: {text}"))
        } else {
            Error::internal(format!("a document could not be handed over: {text}"))
        }
    })
}

/// The inverse, by way of JSON, so that an error names the key: `what` names the argument.
pub(super) fn from_js<T: DeserializeOwned>(what: &str, value: JsValue) -> Result<T> {
    let text = js_sys::JSON::stringify(&value).map_err(|_| {
        Error::invalid(format!("{what}: it holds something that is no JSON: a bigint, or an object that contains itself"))
    })?;
    // What has no text of its own (undefined, a function) is nothing.
    document::parse(what, &text.as_string().unwrap_or_else(|| "null".to_owned()))
}

/// An error as the document that `WhetstoneError.from` takes.
pub(super) fn error_to_js(error: &Error) -> JsValue {
    let document = json!({
        "code": error.code().as_str(),
        "message": error.message(),
        "detail": error.detail(),
        "changed": error.changed(),
    });
    to_js(&document).unwrap_or_else(|_| {
        // Only a number in the detail can be the trouble.
        let plain =
            json!({ "code": error.code().as_str(), "message": error.message(), "detail": {}, "changed": error.changed() });
        to_js(&plain).unwrap_or(JsValue::NULL)
    })
}

/// A version number from JavaScript.
pub(super) fn version_from(value: f64) -> Result<u64> {
    const MOST: f64 = 9_007_199_254_740_991.0;
    if value.fract() != 0.0 || value < 0.0 {
        return Err(Error::invalid(format!("a version is a whole number, not {value}")));
    }
    if value > MOST {
        return Err(Error::new(ErrorCode::NumberTooLarge, format!("{value} is past 2^53")));
    }
    Ok(value as u64)
}

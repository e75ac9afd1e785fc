//! Text to trigrams: lower case, folded to ASCII, then every window of three characters that are letters or digits.

use lance_tokenizer::{AsciiFoldingFilter, LowerCaser, RawTokenizer, TextAnalyzer, TokenStream as _};

/// Code of the rows whose value is null.
pub const NULL: u32 = 0;
/// The largest code, that of `zzz`.
pub const LAST: u32 = 50_652;
/// Digits of a code: ten digits and twenty-six letters, from 1 on, so that no trigram has the code of null.
const BASE: u32 = 37;

/// The digit of a folded character; `None` for everything that is no letter or digit of ASCII.
fn digit(character: char) -> Option<u32> {
    match character {
        '0'..='9' => Some(u32::from(character) - u32::from('0') + 1),
        'a'..='z' => Some(u32::from(character) - u32::from('a') + 11),
        _ => None,
    }
}

/// Calls `each` with the codes of the trigrams of text that is folded already, repeated ones too.
pub fn codes(folded: impl Iterator<Item = char>, mut each: impl FnMut(u32)) {
    let (mut code, mut run) = (0, 0u32);
    for character in folded {
        let Some(digit) = digit(character) else {
            run = 0;
            continue;
        };
        code = code % (BASE * BASE) * BASE + digit;
        run += 1;
        if run >= 3 {
            each(code);
        }
    }
}

/// The three characters of a code, for people; `None` for null and for numbers that are no code.
pub fn text(code: u32) -> Option<String> {
    let character = |digit: u32| match digit {
        1..=10 => char::from_digit(digit - 1, 10),
        11..=36 => char::from_digit(digit - 1, 36),
        _ => None,
    };
    (code < BASE * BASE * BASE).then_some(())?;
    [code / (BASE * BASE), code / BASE % BASE, code % BASE].into_iter().map(character).collect()
}

/// Folds text as Lance does, by Lance's own filters; text of ASCII alone takes a short way.
pub struct Folder(TextAnalyzer);

impl Folder {
    /// A folder.
    pub fn new() -> Folder {
        Folder(TextAnalyzer::builder(RawTokenizer::default()).filter(LowerCaser).filter(AsciiFoldingFilter).build())
    }

    /// Calls `each` with the codes of a text.
    pub fn codes(&mut self, text: &str, mut each: impl FnMut(u32)) {
        if text.is_ascii() {
            return codes(text.bytes().map(|byte| char::from(byte.to_ascii_lowercase())), each);
        }
        let mut stream = self.0.token_stream(text);
        while stream.advance() {
            codes(stream.token().text.chars(), &mut each);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        Folder::new().codes(text, |code| found.push(super::text(code).unwrap()));
        found
    }

    #[test]
    fn golden_codes() {
        for (text, code) in [("the", 41_751), ("000", 1407), ("a1b", 15_145), ("zzz", LAST)] {
            let mut found = Vec::new();
            Folder::new().codes(text, |code| found.push(code));
            assert_eq!((found, super::text(code).as_deref()), (vec![code], Some(text)));
        }
        assert_eq!((super::text(NULL), super::text(LAST + 1), super::text(u32::MAX)), (None, None, None));
    }

    #[test]
    fn windows_hold_letters_and_digits_only() {
        assert_eq!(of("Ab1 x-yz The"), ["ab1", "the"]);
        assert_eq!(of("abcd"), ["abc", "bcd"]);
        assert!(of("").is_empty() && of("ab").is_empty() && of("a b c").is_empty() && of("日本語").is_empty());
    }

    #[test]
    fn folding_comes_before_the_windows() {
        assert_eq!(of("Straße"), ["str", "tra", "ras", "ass", "sse"]);
        assert_eq!(of("CAFÉ"), ["caf", "afe"]);
        // Marks of composed characters disappear; one that stands alone stays, and ends a window.
        assert!(of("e\u{301}te").is_empty());
        assert_eq!(of("ﬁn"), ["fin"]);
    }
}

import type { Changed, Json } from "./types.js";

/** Every error code. See the documentation of each in the crate's `ErrorCode`. */
export type ErrorCode =
  | "TABLE_NOT_FOUND" | "VERSION_NOT_FOUND" | "INDEX_NOT_FOUND" | "INDEX_AMBIGUOUS" | "INDEX_EXISTS" | "INDEX_DROPPED" | "INDEX_CHANGED"
  | "COLUMN_NOT_FOUND" | "UNSUPPORTED_FEATURE" | "UNSUPPORTED_ENCODING" | "UNSUPPORTED_METHOD" | "UNSUPPORTED_TYPE" | "CORRUPT_FILE"
  | "DETAILS_DIFFER" | "NOTHING_LEFT" | "PARTIAL_REPLACEMENT" | "BITMAP_UNKNOWN" | "TYPE_CHANGED" | "OVERLAP" | "UUID_IN_USE" | "STALE_PLAN"
  | "HISTORY_UNSUPPORTED" | "STORE_UNREACHABLE" | "STORE_DENIED" | "STORE_CORS" | "STORE_RANGES" | "STORE_ENCODING" | "STORE_UNSAFE"
  | "STORE_FULL" | "COMMIT_CONFLICT" | "COMMIT_UNKNOWN" | "MEMORY_LIMIT" | "NUMBER_TOO_LARGE" | "INVALID_ARGUMENT" | "SQL_SYNTAX"
  | "ABORTED" | "TIMEOUT" | "ENGINE_CRASHED" | "INTERNAL";

/** The plain form of an error, as it crosses threads and as the command prints it. */
export interface ErrorDocument {
  code: ErrorCode;
  message: string;
  detail: Record<string, Json>;
  changed: Changed;
}

/** Every rejection of this package: a code to branch on, a sentence for a person, and what had been changed. */
export class WhetstoneError extends Error {
  override readonly name = "WhetstoneError";
  readonly code: ErrorCode;
  /** Structured facts, e.g. `{ object: "…" }`. */
  readonly detail: Record<string, Json>;
  /** What had been changed on the store when it happened. */
  readonly changed: Changed;

  constructor(code: ErrorCode, message: string, detail: Record<string, Json> = {}, changed: Changed = "nothing", options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.detail = detail;
    this.changed = changed;
  }

  /** The plain form: survives JSON and structured clone. */
  toJSON(): ErrorDocument {
    return { code: this.code, message: this.message, detail: this.detail, changed: this.changed };
  }

  /** The inverse of {@link WhetstoneError.toJSON}; anything else becomes `INTERNAL`. */
  static from(value: unknown): WhetstoneError {
    if (value instanceof WhetstoneError) return value;
    // Errors of the platform have codes too, of another kind: they are not documents.
    if (!(value instanceof Error) && isErrorDocument(value)) {
      return new WhetstoneError(value.code, value.message, value.detail ?? {}, value.changed ?? "nothing");
    }
    if (value instanceof Error) return new WhetstoneError("INTERNAL", `${value.name}: ${value.message}`, {}, "nothing", { cause: value });
    return new WhetstoneError("INTERNAL", String(value));
  }
}

function isErrorDocument(value: unknown): value is ErrorDocument {
  return typeof value === "object" && value !== null && typeof (value as ErrorDocument).code === "string"
    && typeof (value as ErrorDocument).message === "string";
}

/** @internal */
export function invalid(message: string): WhetstoneError {
  return new WhetstoneError("INVALID_ARGUMENT", message);
}

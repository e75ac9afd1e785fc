// What to paste where, so that a store does what it failed to do.
import type { StoreCheck } from "./conformance.js";
import type { StoreInfo } from "./objects.js";

/** Something to change at the store. */
export interface Remedy {
  /** What it mends, in a sentence. */
  mends: string;
  /** Whose configuration it is: `s3`, `r2`, `gcs`, `azure`, `nginx`, `apache`, … */
  where: string;
  /** A command or a piece of configuration, as it is pasted. */
  paste: string;
}

const EXPOSED = ["ETag", "Content-Range", "Content-Length", "Accept-Ranges", "Last-Modified", "Date"];

/** @internal */
export function remediesFor(info: StoreInfo, checks: StoreCheck[], origin: string | undefined): Remedy[] {
  const bad = (...names: string[]): boolean => checks.some((check) => names.includes(check.name) && (check.status === "failed" || check.status === "warning"));
  const remedies: Remedy[] = [];
  if (bad("cors_read", "cors_write")) remedies.push(...corsRules(info.kind, origin ?? "https://YOUR.PAGE"));
  if (bad("encoding")) {
    remedies.push(
      { mends: "compression garbles ranges", where: "nginx", paste: "gzip off;" },
      { mends: "compression garbles ranges", where: "apache", paste: "SetEnv no-gzip 1" },
    );
  }
  if (bad("create", "race")) {
    remedies.push({
      mends: "two writers may both believe that they have committed",
      where: "the table's home",
      paste: "Keep tables that are written by more than one process on a store with atomic conditional writes (Amazon S3, R2, GCS, Azure Blob, "
        + "MinIO of 2024 or newer, whetstone serve). If you know that there is only one writer, pass --unsafe-commits (unsafeCommits: true).",
    });
  }
  if (bad("clock")) remedies.push({ mends: "clocks that are apart", where: "this machine", paste: "timedatectl set-ntp true" });
  return remedies;
}

/** Rules that let pages of an origin use a store of this kind (`s3`, `gcs`, `azure`, else a web server's), one for each place it may be configured at. */
export function corsRules(kind: string, origin: string): Remedy[] {
  const mends = "pages of another origin cannot use the store";
  const s3 = { AllowedOrigins: [origin], AllowedMethods: ["GET", "PUT", "DELETE", "HEAD"], AllowedHeaders: ["*"], ExposeHeaders: EXPOSED, MaxAgeSeconds: 3600 };
  const rules: Record<string, Remedy[]> = {
    s3: [
      { mends, where: "s3", paste: `aws s3api put-bucket-cors --bucket BUCKET --cors-configuration '${JSON.stringify({ CORSRules: [s3] })}'` },
      { mends, where: "r2", paste: JSON.stringify([s3]) },
    ],
    gcs: [{
      mends, where: "gcs",
      paste: `cors.json: ${JSON.stringify([{ origin: [origin], method: ["GET", "PUT", "DELETE", "HEAD"], responseHeader: [...EXPOSED, "Content-Type", "Authorization", "x-goog-if-generation-match"], maxAgeSeconds: 3600 }])}\n`
        + "gcloud storage buckets update gs://BUCKET --cors-file=cors.json",
    }],
    azure: [{
      mends, where: "azure",
      paste: `az storage cors add --services b --methods GET PUT DELETE HEAD OPTIONS --origins '${origin}' --allowed-headers '*' --exposed-headers '${EXPOSED.join(",")},x-ms-*' --max-age 3600 --account-name ACCOUNT`,
    }],
  };
  return rules[kind] ?? [
    {
      mends, where: "nginx",
      paste: [
        `add_header Access-Control-Allow-Origin "${origin}" always;`,
        `add_header Access-Control-Expose-Headers "${EXPOSED.join(", ")}" always;`,
        "if ($request_method = OPTIONS) {",
        `  add_header Access-Control-Allow-Origin "${origin}";`,
        "  add_header Access-Control-Allow-Methods \"GET, PUT, DELETE, PROPFIND\";",
        "  add_header Access-Control-Allow-Headers \"Range, If-None-Match, Content-Type, Depth, Authorization\";",
        "  add_header Access-Control-Max-Age 3600;",
        "  return 204;",
        "}",
      ].join("\n"),
    },
    {
      mends, where: "apache",
      paste: [
        `Header always set Access-Control-Allow-Origin "${origin}"`,
        `Header always set Access-Control-Expose-Headers "${EXPOSED.join(", ")}"`,
        "Header always set Access-Control-Allow-Methods \"GET, PUT, DELETE, PROPFIND, OPTIONS\"",
        "Header always set Access-Control-Allow-Headers \"Range, If-None-Match, Content-Type, Depth, Authorization\"",
        "RewriteEngine On",
        "RewriteCond %{REQUEST_METHOD} OPTIONS",
        "RewriteRule ^ - [R=204,L]",
      ].join("\n"),
    },
  ];
}

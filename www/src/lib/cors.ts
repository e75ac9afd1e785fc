// The rule to paste where a store does not let this page in, for the kind of store that the address points to.

export interface CorsRule {
  label: string;
  text: string;
}

const EXPOSED = ["ETag", "Content-Range", "Content-Length", "Accept-Ranges", "Last-Modified", "Date"];
const METHODS = ["GET", "PUT", "DELETE", "HEAD"];

/** What the package's own check of a store would say to paste (`whetstone store-check`). */
export function corsRule(origin: string, target: string | null): CorsRule {
  const address = target ?? "";
  if (/^gs:|storage\.googleapis\.com/i.test(address)) {
    const rule = [{ origin: [origin], method: METHODS, responseHeader: [...EXPOSED, "Content-Type", "Authorization", "x-goog-if-generation-match"], maxAgeSeconds: 3600 }];
    return { label: "Configuration and command for the bucket", text: `cors.json: ${JSON.stringify(rule)}\ngcloud storage buckets update gs://BUCKET --cors-file=cors.json` };
  }
  if (/^az:|blob\.core\.windows\.net/i.test(address)) {
    return {
      label: "Command for the storage account",
      text: `az storage cors add --services b --methods GET PUT DELETE HEAD OPTIONS --origins '${origin}' --allowed-headers '*' --exposed-headers '${EXPOSED.join(",")},x-ms-*' --max-age 3600 --account-name ACCOUNT`,
    };
  }
  if (/^s3:|amazonaws\.com|r2\.cloudflarestorage\.com|digitaloceanspaces|wasabisys|backblazeb2/i.test(address)) {
    const rule = [{ AllowedOrigins: [origin], AllowedMethods: METHODS, AllowedHeaders: ["*"], ExposeHeaders: EXPOSED, MaxAgeSeconds: 3600 }];
    return { label: "CORS configuration of the bucket", text: JSON.stringify(rule, null, 2) };
  }
  const lines = [
    `Access-Control-Allow-Origin: ${origin}`,
    "Access-Control-Allow-Methods: GET, HEAD, PUT, DELETE, PROPFIND, OPTIONS",
    "Access-Control-Allow-Headers: Range, If-None-Match, Content-Type, Depth, Authorization",
    `Access-Control-Expose-Headers: ${EXPOSED.join(", ")}`,
    "Access-Control-Max-Age: 3600",
  ];
  return { label: "Headers that the server has to send", text: lines.join("\n") };
}

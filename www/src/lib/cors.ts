// The rules to paste where a store does not let this page in, for the kind of store that the address points to: those of the package.

import { corsRules } from "whetstone/rules";

export interface CorsRule {
  label: string;
  text: string;
}

const LABELS: Record<string, string> = {
  s3: "Amazon S3, and stores that take its command line", r2: "Cloudflare R2: the CORS policy of the bucket", gcs: "Google Cloud Storage: a file and a command", azure: "Azure: a command for the storage account",
  nginx: "nginx", apache: "Apache",
};

/** Kind of store, and whose rule of that kind alone is meant. */
const PLACES: readonly [RegExp, string, string?][] = [
  [/^gs:|storage\.googleapis\.com/i, "gcs"],
  [/^az:|blob\.core\.windows\.net/i, "azure"],
  [/r2\.cloudflarestorage\.com/i, "s3", "r2"],
  [/amazonaws\.com|digitaloceanspaces|wasabisys|backblazeb2/i, "s3", "s3"],
  [/^s3:/i, "s3"],
];

export function rulesFor(origin: string, target: string | null): CorsRule[] {
  const [, kind, only] = PLACES.find(([address]) => address.test(target ?? "")) ?? [null, "http"];
  return corsRules(kind, origin).filter(({ where }) => only === undefined || where === only).map(({ where, paste }) => ({ label: LABELS[where] ?? where, text: paste }));
}

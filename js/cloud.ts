/** Azure Blob storage and Google Cloud Storage. */
import { invalid } from "./errors.js";
import { platform } from "./platform.js";
import { common, defined, parseUrl, Store } from "./stores.js";
import type { CommonStoreOptions } from "./stores.js";

/** Options of {@link azureStore}. */
export interface AzureStoreOptions extends CommonStoreOptions {
  /** Shared access signature: the query that the portal or `az storage container generate-sas` gives. */
  sas?: string;
  /** Asked for a SAS on the thread that opened the table, as often as requests need one; never stored. */
  credentials?: () => { sas: string } | Promise<{ sas: string }>;
  /** Name of the account, for `az:` addresses; in Node `AZURE_STORAGE_ACCOUNT` when absent. */
  account?: string;
  /** Address of the account, for emulators and other clouds: `https://ACCOUNT.blob.core.windows.net` is the default. */
  endpoint?: string;
  /** Send nothing that identifies anyone. */
  anonymous?: boolean;
}

/** A table at `https://ACCOUNT.blob.core.windows.net/container/key` or `az://container/key`. In Node `AZURE_STORAGE_SAS_TOKEN` is used when nothing is given. */
export function azureStore(target: string | URL, options: AzureStoreOptions = {}): Store {
  const text = String(target).replace(/\/+$/, "");
  const url = parseUrl(text);
  if (!["az:", "http:", "https:"].includes(url.protocol)) throw invalid(`${url.protocol} is no address of Azure Blob storage: give az: or https:`);
  // What the portal calls "Blob SAS URL" has the signature in it: that is for one object, and no address to show to people.
  if (url.search !== "" || url.hash !== "") throw invalid("give the shared access signature as the option sas, not in the address");
  const env = platform().environment();
  const account = options.account ?? (text.startsWith("az:") ? env["AZURE_STORAGE_ACCOUNT"] : undefined);
  if (account !== undefined && !/^[a-z0-9]{3,24}$/.test(account)) throw invalid("the name of an Azure account is 3 to 24 lower-case letters and digits");
  const endpoint = options.endpoint ?? (account === undefined ? undefined : `https://${account}.blob.core.windows.net`);
  if (endpoint !== undefined) parseUrl(endpoint);
  if (url.protocol === "az:" && endpoint === undefined) throw invalid("an az: address needs the account (AZURE_STORAGE_ACCOUNT, or the option account)");
  const { credentials, anonymous } = options;
  const given = options.sas !== undefined || credentials !== undefined || anonymous === true;
  const sas = given ? options.sas : env["AZURE_STORAGE_SAS_TOKEN"];
  return new Store(
    { kind: "azure", url: text, ...defined({ endpoint: endpoint?.replace(/\/+$/, ""), sas, anonymous }), ...common(options) },
    { spelling: "Put Blob with If-None-Match: *", loser: "status 409 BlobAlreadyExists, or 412" },
    credentials === undefined ? undefined : { credentials: async () => credentials() },
  );
}

/** Options of {@link gcsStore}. */
export interface GcsStoreOptions extends CommonStoreOptions {
  /** OAuth access token, e.g. of `gcloud auth print-access-token`. */
  token?: string;
  /** Asked for a token on the thread that opened the table, as often as requests need one; never stored. */
  credentials?: () => { token: string } | Promise<{ token: string }>;
  /** Address of another server than Google's. */
  endpoint?: string;
  /** Send nothing that identifies anyone. */
  anonymous?: boolean;
}

/** A table at `gs://bucket/key` or `https://storage.googleapis.com/bucket/key`. In Node `GOOGLE_OAUTH_ACCESS_TOKEN` is used when nothing is given. */
export function gcsStore(target: string | URL, options: GcsStoreOptions = {}): Store {
  const text = String(target).replace(/\/+$/, "");
  const url = parseUrl(text);
  if (!["gs:", "http:", "https:"].includes(url.protocol)) throw invalid(`${url.protocol} is no address of Google Cloud Storage: give gs: or https:`);
  if (url.search !== "" || url.hash !== "") throw invalid("a table's address has no query and no fragment: objects are below it");
  const { credentials, anonymous, endpoint } = options;
  if (endpoint !== undefined) parseUrl(endpoint);
  const given = options.token !== undefined || credentials !== undefined || anonymous === true;
  const token = given ? options.token : platform().environment()["GOOGLE_OAUTH_ACCESS_TOKEN"];
  return new Store(
    { kind: "gcs", url: text, ...defined({ endpoint: endpoint?.replace(/\/+$/, ""), token, anonymous }), ...common(options) },
    { spelling: "PUT with x-goog-if-generation-match: 0", loser: "status 412" },
    credentials === undefined ? undefined : { credentials: async () => credentials() },
  );
}

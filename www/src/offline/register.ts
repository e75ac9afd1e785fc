/** Lets the page work without a network from its second load on. It is a comfort: a browser that forbids it loses nothing else. */
export function workOffline(): void {
  if (!("serviceWorker" in navigator)) return;
  const register = () => void navigator.serviceWorker.register("sw.js").catch(() => undefined);
  // After the page itself, whose files it fetches once more.
  if (document.readyState === "complete") register();
  else window.addEventListener("load", register, { once: true });
}

import { useCallback, useEffect, useState } from "preact/hooks";

export type ThemeChoice = "as the system" | "light" | "dark";

const KEY = "whetstone-colours";
const NEXT: Record<ThemeChoice, ThemeChoice> = { "as the system": "light", light: "dark", dark: "as the system" };

function stored(): ThemeChoice {
  try {
    const value = window.localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : "as the system";
  } catch {
    return "as the system";
  }
}

/** Light or dark: the system's choice unless the reader made one. `stamp` rises with every change, for canvases. */
export function useTheme(): { choice: ThemeChoice; next: () => void; stamp: number } {
  const [choice, setChoice] = useState<ThemeChoice>(stored);
  const [stamp, setStamp] = useState(0);
  useEffect(() => {
    if (choice === "as the system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = choice;
    setStamp((n) => n + 1);
    try {
      if (choice === "as the system") window.localStorage.removeItem(KEY);
      else window.localStorage.setItem(KEY, choice);
    } catch {
      // A browser that keeps nothing still shows the choice until the tab is closed.
    }
  }, [choice]);
  useEffect(() => {
    const media = window.matchMedia("(prefers-color-scheme: dark)");
    const changed = () => setStamp((n) => n + 1);
    media.addEventListener("change", changed);
    return () => media.removeEventListener("change", changed);
  }, []);
  const next = useCallback(() => setChoice((now) => NEXT[now]), []);
  return { choice, next, stamp };
}

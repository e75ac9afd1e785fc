import { render } from "preact";
import { App } from "./app.js";
import { workOffline } from "./offline/register.js";
import "./style/page.css";

const root = document.getElementById("app");
if (root) render(<App />, root);
workOffline();

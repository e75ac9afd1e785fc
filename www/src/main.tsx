import { render } from "preact";
import "./style/page.css";

const root = document.getElementById("app");
if (root) render(<h1>Whetstone</h1>, root);

/** Starts the dashboard in the page. */

import { mount } from "svelte";
import App from "./App.svelte";
import "./app.css";
import { takeToken } from "./api/session.svelte";
import { applyTheme } from "./theme.svelte";

takeToken();
addEventListener("hashchange", takeToken);
applyTheme();
mount(App, { target: document.body });

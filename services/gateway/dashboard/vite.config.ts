import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

// Files have digests in their names, so that browsers keep them for good; nothing is inlined, as the page's policy wants.
export default defineConfig({
  plugins: [svelte()],
  build: { target: "es2022", assetsInlineLimit: 0, modulePreload: { polyfill: false } },
});

// workerd imports a wasm file as a compiled module.
declare const module: WebAssembly.Module;
export default module;

/** The part of WebAssembly that is used here, which is missing in Node's types. */
export interface Memory {
  readonly buffer: ArrayBuffer
}
export interface Instance {
  readonly exports: Readonly<Record<string, unknown>>
}
/** Functions by module and name. */
export type Imports = Readonly<Record<string, Readonly<Record<string, unknown>>>>

interface WebAssemblyNamespace {
  readonly Memory: abstract new () => Memory
  compile(bytes: Uint8Array): Promise<object>
  instantiate(module: object, imports: Imports): Promise<Instance>
}

export const { WebAssembly } = globalThis as unknown as { readonly WebAssembly: WebAssemblyNamespace }

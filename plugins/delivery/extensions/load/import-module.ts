/**
 * Imports a module outside the package: `url` of a file. It is a separate module because the build replaces it: code
 * from V8's cache cannot use `import()`.
 */
export const importModule = (url: string): Promise<Record<string, unknown>> => import(url)

/**
 * Imports a module that is no part of the package: `url` of a file. It stands alone because the build puts another function
 * in its place: code that V8 took from its cache does not know how to import.
 */
export const importModule = (url: string): Promise<Record<string, unknown>> => import(url)

/** Name and version; they must match the manifest. */
export const manifest = { name: 'bridge-matrix', version: '0.1.0' }

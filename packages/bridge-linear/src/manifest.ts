/** Name and version; they must match the manifest. */
export const manifest = { name: 'bridge-linear', version: '0.1.0' }

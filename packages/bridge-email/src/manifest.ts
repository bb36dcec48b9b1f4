/** Name and version; they must match the manifest. */
export const manifest = { name: 'bridge-email', version: '0.1.0' }

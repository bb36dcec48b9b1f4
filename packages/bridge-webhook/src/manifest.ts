/** Name and version; they must match the manifest. */
export const manifest = { name: 'bridge-webhook', version: '0.1.0' }

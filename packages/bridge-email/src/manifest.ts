/** Name and version, as the manifest beside this folder says them. */
export const manifest = { name: 'bridge-email', version: '0.1.0' }

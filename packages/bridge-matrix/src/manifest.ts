/** Name and version, as the manifest beside this folder says them. */
export const manifest = { name: 'bridge-matrix', version: '0.1.0' }

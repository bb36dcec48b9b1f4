/** Name and version, as the manifest beside this folder says them. */
export const manifest = { name: 'bridge-gchat', version: '0.1.0' }

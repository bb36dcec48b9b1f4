/** Name and version, as the manifest beside this folder says them. */
export const manifest = { name: 'bridge-irc', version: '0.1.0' }

/**
 * Names of plugins in earlier versions, and the plugin that does their work now, or `kernel`. A home may name them in
 * `plugins.disabled` and `plugins.replace`, and a drop-in in `replaces`. One line a name, sorted.
 */
export const formerNames: Readonly<Record<string, string>> = {
  channels: 'streams',
  discovery: 'kernel',
  'json-replies': 'kernel',
  'own-user': 'tcp',
  'reply-checks': 'kernel',
  services: 'kernel',
  tls: 'tcp',
}

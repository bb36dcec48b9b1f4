/**
 * Names of plugins in earlier versions, and the plugin that replaced them, or `kernel`. A home may name them in
 * `plugins.disabled` and `plugins.replace`, and a drop-in in `replaces`. One line per name, sorted.
 */
export const formerNames: Readonly<Record<string, string>> = {
  channels: 'streams',
  discovery: 'kernel',
  'hooks-automation': 'hooks',
  'hooks-claims': 'hooks',
  'hooks-heartbeats': 'hooks',
  'hooks-sandboxes': 'hooks',
  'hooks-sidecars': 'hooks',
  'hooks-spawning': 'hooks',
  'hooks-tasks': 'hooks',
  'hooks-tools': 'hooks',
  'hooks-window-manager': 'hooks',
  'json-replies': 'kernel',
  'own-user': 'tcp',
  'reply-checks': 'kernel',
  reserve: 'disk',
  services: 'kernel',
  'settings-sessions': 'settings',
  tls: 'tcp',
}

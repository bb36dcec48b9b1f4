/** Names of secret variables and headers, as words between separators. */
const NAMES =
  /(?:^|[_.-])(?:api[_-]?key|access[_-]?key|private[_-]?key|secret|token|pat|passwd|password|passphrase|pwd|credentials?|authorization|cookie|dsn|bearer|auth|key|webhook[_-]?url)(?:$|[_.-])/i

/** Formats of keys of well-known services, and URLs with a password. */
const VALUES =
  /(?:^|[\s"'=:,;])(?:sk-[\w-]{12,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abeprs]-[\w-]{10,}|AKIA[A-Z0-9]{16}|AIza[\w-]{30,}|npm_\w{30,}|hf_\w{20,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*|Bearer\s+\S{8,}|Basic\s+[\w+/=]{8,})|\/\/[^/\s:@]*:[^/\s@]+@|-----BEGIN [A-Z ]*PRIVATE KEY-----/

/** Whether a value belongs in the vault: by its name (`apiKey` and `API_KEY` alike), or by its format. */
export const isSecret = (name: string, value: string): boolean =>
  value.length >= 4 && (NAMES.test(name.replace(/([a-z0-9])([A-Z])/g, '$1_$2')) || VALUES.test(value))

/** Whether an argument or a URL contains a key. */
export const holdsSecret = (text: string): boolean =>
  VALUES.test(text) || /[?&](?:api[_-]?key|token|access_token|key|secret|sig)=[^&\s]{8,}/i.test(text)

/** Vault folder of a server's secrets; the name is spelled by the same rule as in the daemon. */
export function secretBase(server: string, workspaceId: string | undefined): string {
  const segment = server
    .toLowerCase()
    .replace(/[^a-z0-9_.-]/g, '-')
    .replace(/^[^a-z0-9]+/, '')
  return `vault:mcp/${workspaceId === undefined ? 'global' : `ws/${workspaceId}`}/${segment || 'server'}`
}

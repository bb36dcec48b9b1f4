import { parseSecretRef } from '../../../../kernel/kit/secret-ref.js'

/** Words that mark a member name as secret, in any spelling: apiKey, api_key, API-KEY, x-api-key. */
const SECRET =
  /(?:apikey|accesskey|privatekey|signingkey|encryptionkey|sharedkey|secret|passw(?:or)?d|passphrase|passcode|pwd|token|credentials?|authorization|cookie|bearer|jwt|dsn|connectionstring)/
const SECRET_END = /(?:^key|auth|_key|otp)$/
/** Names with such a word but without a secret: counts, budgets, digests, folders. */
const HARMLESS =
  /^(?:pwd|oldpwd)$|(?:hash|count|total|status|state|type|kind|usage|budget|limit|path|file|mode|slots?|bytes|seconds|present|required)$|^(?:max|min|num|input|output|total|cached|context|reasoning)\w*tokens?$|^tokens?(?:in|out|used|total|per\w*)?$/

/** Whether the name of a member suggests that its value is a secret. */
export function isSecretName(name: string): boolean {
  if (name.length > 128) return false
  const snake = name.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toLowerCase()
  const letters = snake.replace(/[^a-z0-9]/g, '')
  if (letters === 'token' || letters === 'tokens') return letters === 'token'
  if (HARMLESS.test(letters)) return false
  return SECRET.test(letters) || SECRET_END.test(snake.replace(/[^a-z0-9]+/g, '_'))
}

/** Members that contain variables, headers or the like: all of their values are hidden, whatever their names. */
const ENVIRONMENTS = new Set(['env', 'environment', 'envvars', 'headers', 'secretenv'])
export const isEnvironment = (name: string): boolean => ENVIRONMENTS.has(name.replace(/[_-]/g, '').toLowerCase())

/** Whether a text only refers to a secret: `vault:…`, `env:NAME`, `${NAME}`. */
export const isReference = (text: string): boolean =>
  ['vault', 'env'].includes(parseSecretRef(text)?.scheme ?? '') || /^\$\{?[A-Za-z_]\w{0,255}\}?$/.test(text)

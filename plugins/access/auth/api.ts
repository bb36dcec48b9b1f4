/** `svc/plugins/auth`: check of the operator token, its file, and errors about tokens and keys. */
import { command } from '../../../kernel/kit/commands/command-line.js'
import { defineErrors, type Incoming, token } from '../../../kernel/plugin.js'

export interface AuthApi {
  /** Whether an Authorization header holds the operator token. */
  hasOperatorToken(authorization: Incoming['headers'][string]): boolean
}

export const Auth = token<AuthApi>('auth@1')

/** File in the home with the operator token: one line, mode 0600. */
export const TOKEN_FILE = 'operator.token'

export const AuthErrors = defineErrors({
  token_unknown: {
    status: 401,
    message: 'this token is not valid, or no longer valid',
    next: `print the operator token: ${command('auth token')}`,
  },
  operator_token_required: {
    status: 401,
    message: 'keys are made, listed and revoked with the operator token only',
    next: `send the header \`Authorization: Bearer <token>\` with what \`${command('auth token')}\` prints`,
  },
  api_key_not_found: { status: 404, message: 'no such key', next: `list keys: ${command('auth key list')}` },
  api_key_name_taken: { status: 409, message: 'another key has this name', next: command('auth key list') },
  api_keys_full: { status: 409, message: 'the maximum number of keys is reached', next: command('auth key list') },
})

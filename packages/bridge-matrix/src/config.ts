import { type Instance, InstanceProblem, settingsOf } from '../../bridge-kit/src/index.js'

/** Validated settings of an instance. */
export interface MatrixConfig {
  /** Without a trailing slash. */
  readonly homeserver: string
  readonly token: string
  readonly rooms: readonly string[]
  /** User ids, and `*:server`. */
  readonly invitesFrom: readonly string[]
  readonly pollSeconds: number
  /** Answer messages in rooms that do not address the bot. */
  readonly answersAll: boolean
}

const HERE = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/
const USER = /^@[^\s:]{1,200}:[^\s]{1,250}$/

/** Whether a text is a user id. */
export const isUser = (text: unknown): text is string =>
  typeof text === 'string' && text.length <= 255 && USER.test(text)

/** Whether a text is a room id; those of newer room versions name no server. */
export const isRoom = (text: unknown): text is string => typeof text === 'string' && /^![\x21-\x7e]{1,254}$/.test(text)

/** Whether a text is an event id. */
export const isEvent = (text: unknown): text is string =>
  typeof text === 'string' && /^\$[\x21-\x7e]{1,254}$/.test(text)

/**
 * Reads `provider_config` and the secret.
 * @throws InstanceProblem If they are invalid
 */
export function configOf(instance: Instance): MatrixConfig {
  const settings = settingsOf(instance)
  const homeserver = settings.url('homeserver', '', ['https', 'http'])
  const { protocol, hostname } = new URL(homeserver)
  if (protocol !== 'https:' && !HERE.test(hostname))
    throw new InstanceProblem({
      status: 'error',
      reason: 'tenant_config_invalid',
      message: 'provider_config.homeserver is neither https nor an address of this machine',
    })
  const { reply } = (instance.config.group ?? {}) as { readonly reply?: unknown }
  const { allow_user_ids: allowed } = (instance.config.dm ?? {}) as { readonly allow_user_ids?: unknown }
  return {
    homeserver,
    token: settings.secret(
      'access_token',
      /^[\x21-\x7e]{1,2000}$/,
      'copy it from the settings of a session of the bot',
    ),
    rooms: settings.texts('rooms', /^[#!]\S{1,254}$/, 100),
    invitesFrom: [
      ...settings.texts('invites_from', /^(?:\*|@[^\s:]{1,200}):\S{1,250}$/, 200),
      ...(Array.isArray(allowed) ? allowed.filter(isUser) : []),
    ],
    pollSeconds: settings.integer('poll_seconds', 30, 1, 60),
    answersAll: reply === 'all',
  }
}

/** Whether invites by a user are accepted. */
export function mayInvite({ invitesFrom }: Pick<MatrixConfig, 'invitesFrom'>, user: string): boolean {
  const server = user.slice(user.indexOf(':') + 1)
  return invitesFrom.includes(user) || invitesFrom.includes(`*:${server}`)
}

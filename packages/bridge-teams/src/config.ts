import {
  type Instance,
  InstanceProblem,
  type ListenConfig,
  listenConfigOf,
  settingsOf,
} from '../../bridge-kit/src/index.js'

/** Validated settings of an instance. */
export interface TeamsConfig {
  readonly listen: ListenConfig
  readonly appId: string
  readonly password: string
  /** The app's tenant, or that of the Bot Framework for multi-tenant apps. */
  readonly authority: string
  /** The tenant whose messages are accepted. */
  readonly tenant: string
  readonly loginUrl: string
  readonly openIdUrl: string
  /** URL of a Bot Connector other than Microsoft's, without a trailing slash. */
  readonly serviceUrl: string | undefined
  /** Answer messages in rooms that do not address the bot. */
  readonly answersAll: boolean
}

const GUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const HERE = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/

/** Reads `provider_config` and the secrets. @throws InstanceProblem If they are invalid */
export function configOf(instance: Instance): TeamsConfig {
  const settings = settingsOf(instance)
  const url = (key: string, fallback: string): string => {
    const value = settings.url(key, fallback, ['https', 'http'])
    const { protocol, hostname } = new URL(value)
    if (protocol === 'https:' || HERE.test(hostname)) return value
    throw new InstanceProblem({
      status: 'error',
      reason: 'tenant_config_invalid',
      message: `provider_config.${key} is neither https nor an address of this machine`,
    })
  }
  const { reply } = (instance.config.group ?? {}) as { readonly reply?: unknown }
  const appId = settings.secret('app_id', GUID, 'copy the Microsoft App ID of the Azure Bot resource').toLowerCase()
  const tenantHint = 'copy the Directory (tenant) ID of the app'
  return {
    listen: listenConfigOf(instance),
    appId,
    password: settings.secret('app_password', /^[\x21-\x7e]{1,500}$/, 'make a client secret of the app'),
    authority:
      instance.secret('app_tenant_id') === undefined
        ? 'botframework.com'
        : settings.secret('app_tenant_id', GUID, tenantHint),
    tenant: settings.text('tenant_id', '', GUID).toLowerCase(),
    loginUrl: url('login_url', 'https://login.microsoftonline.com'),
    openIdUrl: url('openid_url', 'https://login.botframework.com/v1/.well-known/openidconfiguration'),
    serviceUrl: instance.config.service_url === undefined ? undefined : url('service_url', ''),
    answersAll: reply === 'all',
  }
}

/** Bot Connector hosts for Teams; no other host may receive the token. */
const HOSTS = /^(?:smba\.trafficmanager\.net|(?:[a-z0-9-]+\.)+(?:botframework\.com|teams\.microsoft\.com))$/

/**
 * The Bot Connector URL without a trailing slash; undefined: it may not receive the bot's token.
 * @param own A configured Bot Connector
 */
export function connectorOf(serviceUrl: unknown, own: string | undefined): string | undefined {
  if (typeof serviceUrl !== 'string' || serviceUrl.length > 500 || !URL.canParse(serviceUrl)) return undefined
  const { protocol, hostname, port, username, password, search, hash, pathname, origin } = new URL(serviceUrl)
  if (`${username}${password}${search}${hash}` !== '') return undefined
  const address = `${origin}${pathname}`.replace(/\/+$/, '')
  const isMicrosoft = protocol === 'https:' && port === '' && HOSTS.test(hostname)
  return isMicrosoft || (own !== undefined && address === own) ? address : undefined
}

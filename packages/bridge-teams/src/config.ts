import {
  type Instance,
  InstanceProblem,
  type ListenConfig,
  listenConfigOf,
  settingsOf,
} from '../../bridge-kit/src/index.js'

/** What an instance of Teams needs, checked. */
export interface TeamsConfig {
  readonly listen: ListenConfig
  readonly appId: string
  readonly password: string
  /** Tenant of the app, or that of the Bot Framework for apps of many tenants. */
  readonly authority: string
  /** The tenant whose messages count. */
  readonly tenant: string
  readonly loginUrl: string
  readonly openIdUrl: string
  /** A Bot Connector that is not one of Microsoft's, without a slash at its end. */
  readonly serviceUrl: string | undefined
  /** The instance answers in rooms to what is not addressed to it as well. */
  readonly answersAll: boolean
}

const GUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const HERE = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/

/** Reads `provider_config` and the secrets. @throws InstanceProblem what is wrong with them */
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

/** Hosts of the Bot Connector for Teams; the token of the bot goes to no other. */
const HOSTS = /^(?:smba\.trafficmanager\.net|(?:[a-z0-9-]+\.)+(?:botframework\.com|teams\.microsoft\.com))$/

/**
 * The address of a Bot Connector, without a slash at its end; undefined: it is none that may have the token of the bot.
 * @param own a Bot Connector of the configuration
 */
export function connectorOf(serviceUrl: unknown, own: string | undefined): string | undefined {
  if (typeof serviceUrl !== 'string' || serviceUrl.length > 500 || !URL.canParse(serviceUrl)) return undefined
  const { protocol, hostname, port, username, password, search, hash, pathname, origin } = new URL(serviceUrl)
  if (`${username}${password}${search}${hash}` !== '') return undefined
  const address = `${origin}${pathname}`.replace(/\/+$/, '')
  const isMicrosoft = protocol === 'https:' && port === '' && HOSTS.test(hostname)
  return isMicrosoft || (own !== undefined && address === own) ? address : undefined
}

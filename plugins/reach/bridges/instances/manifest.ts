import { command } from '../../../../kernel/kit/commands/command-line.js'
import { cut, shown } from '../../../../kernel/kit/text.js'
import type { Actor } from '../../../../kernel/plugin.js'
import type { AppManifest, PlatformManifest } from '../../../../schemas/bridges.js'
import { BridgeErrors } from '../api.js'
import type { Instance, Instances } from './instances.js'

/** Maximum name lengths on the platform. */
const NAME_MAX = 35
const BOT_MAX = 80

/**
 * Builds a platform's app manifest from an instance. `webhook`: where the platform sends events; empty if the app
 * connects itself.
 */
type Maker = (instance: Instance, webhook: string) => PlatformManifest

const slack: Maker = ({ displayName, providerConfig }, webhook) => ({
  _metadata: { major_version: 1, minor_version: 1 },
  display_information: {
    name: cut(displayName, NAME_MAX - 1),
    description: 'Sends questions to agents and shows their answers',
    background_color: '#2c2d30',
  },
  features: {
    bot_user: { display_name: cut(displayName, BOT_MAX - 1), always_online: true },
    slash_commands: [
      {
        command: typeof providerConfig.slash_command === 'string' ? providerConfig.slash_command : '/svc',
        description: 'Ask the agent',
        usage_hint: '[what to do]',
        url: webhook,
        should_escape: false,
      },
    ],
  },
  oauth_config: {
    scopes: {
      bot: [
        'app_mentions:read',
        'channels:history',
        'channels:read',
        'chat:write',
        'commands',
        'files:read',
        'groups:history',
        'groups:read',
        'im:history',
        'im:read',
        'im:write',
        'mpim:history',
        'mpim:read',
        'reactions:read',
        'reactions:write',
        'users:read',
      ],
    },
  },
  settings: {
    event_subscriptions: {
      bot_events: ['app_mention', 'message.channels', 'message.groups', 'message.im', 'message.mpim', 'reaction_added'],
      request_url: webhook,
    },
    interactivity: { is_enabled: true, request_url: webhook },
    org_deploy_enabled: false,
    socket_mode_enabled: webhook === '',
    token_rotation_enabled: false,
  },
})

const MAKERS: Readonly<Record<string, Maker>> = { slack }
/** Alternative route name for the only platform with a manifest. */
const ALIAS = 'chatprovider'

/** The manifest in the platform's format, without empty addresses. @throws as {@link manifestOf} does */
export function appManifestOf(instances: Instances, platform: string, id: string, actor: Actor): AppManifest {
  const { features, settings, ...rest } = manifestOf(instances, platform, id, actor)
  return {
    ...rest,
    features: {
      ...features,
      slash_commands: features.slash_commands.map(withoutEmpty),
      // Without this tab, people cannot send the bot direct messages.
      app_home: { home_tab_enabled: false, messages_tab_enabled: true, messages_tab_read_only_enabled: false },
    },
    settings: {
      ...settings,
      event_subscriptions: withoutEmpty(settings.event_subscriptions),
      interactivity: withoutEmpty(settings.interactivity),
    },
  }
}

/** @throws Fault `bridge_manifest_not_found`, `bridge_not_found`, `bridge_invalid` */
export function manifestOf(instances: Instances, named: string, id: string, actor: Actor): PlatformManifest {
  const platform = named === ALIAS ? 'slack' : named
  const make = Object.hasOwn(MAKERS, platform) ? MAKERS[platform] : undefined
  if (!make) throw BridgeErrors.bridge_manifest_not_found(`the platform ${shown(named)} has no app manifest`)
  const instance = instances.getVisible(id, actor)
  if (instance.platform !== platform) {
    throw BridgeErrors.bridge_invalid(
      `instance: ${shown(id)} is a bridge to ${instance.platform}, not to ${platform}`,
      {
        next: command('bridge list', '--platform', platform),
      },
    )
  }
  const { public_url } = instance.providerConfig
  return make(instance, instances.state(id)?.webhookUrl ?? (typeof public_url === 'string' ? public_url : ''))
}

function withoutEmpty<T extends { url?: string; request_url?: string }>(part: T): Omit<T, 'url' | 'request_url'> {
  const { url, request_url, ...rest } = part
  return { ...rest, ...(url && { url }), ...(request_url && { request_url }) }
}

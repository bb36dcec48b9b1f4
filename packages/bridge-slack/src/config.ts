import { type Instance, settingsOf } from '../../bridge-kit/src/index.js'

/** Validated settings of an instance. */
export interface SlackConfig {
  readonly botToken: string
  readonly appToken: string
  readonly apiUrl: string
  /** Answer a channel message in a thread. */
  readonly threads: boolean
}

/** Reads `provider_config` and the secrets. @throws InstanceProblem If they are invalid */
export function configOf(instance: Instance): SlackConfig {
  const settings = settingsOf(instance)
  return {
    botToken: settings.secret(
      'bot_token',
      /^xox[a-z]-[\w.-]{1,500}$/,
      'api.slack.com/apps, the app, OAuth & Permissions, Bot User OAuth Token (xoxb-…)',
    ),
    appToken: settings.secret(
      'app_token',
      /^xapp-[\w.-]{1,500}$/,
      'api.slack.com/apps, the app, Basic Information, App-Level Tokens with the scope connections:write (xapp-…)',
    ),
    apiUrl: settings.url('api_url', 'https://slack.com/api', ['https', 'http']),
    threads: settings.flag('reply_in_thread', true),
  }
}

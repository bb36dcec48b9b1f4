import { type Instance, settingsOf } from '../../bridge-kit/src/index.js'

/** Validated settings of an instance. */
export interface DiscordConfig {
  readonly token: string
  readonly apiUrl: string
  /** Request the text of messages that do not mention the bot. */
  readonly content: boolean
}

/** Reads `provider_config` and the secrets. @throws InstanceProblem If they are invalid */
export function configOf(instance: Instance): DiscordConfig {
  const settings = settingsOf(instance)
  return {
    token: settings.secret(
      'bot_token',
      /^[\w.-]{20,200}$/,
      'discord.com/developers/applications, the application, Bot, Reset Token',
    ),
    apiUrl: settings.url('api_url', 'https://discord.com/api', ['https', 'http']),
    content: settings.flag('message_content', true),
  }
}

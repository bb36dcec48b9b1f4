import { type Instance, settingsOf } from '../../bridge-kit/src/index.js'

/** Validated settings of an instance. */
export interface TelegramConfig {
  readonly token: string
  readonly apiRoot: string
  readonly pollSeconds: number
  readonly replaceWebhook: boolean
  readonly chats: readonly string[]
  /** Answer messages in groups that do not address the bot. */
  readonly answersAll: boolean
}

const TOKEN = /^\d{1,20}:[A-Za-z0-9_-]{1,100}$/
const CHAT = /^(?:-?\d{1,20}|@[A-Za-z]\w{3,63})$/

/** Whether a text is a Telegram chat id or name. */
export const isChat = (text: string): boolean => CHAT.test(text)

/** Reads `provider_config` and the secrets. @throws InstanceProblem If they are invalid */
export function configOf(instance: Instance): TelegramConfig {
  const settings = settingsOf(instance)
  const { reply } = (instance.config.group ?? {}) as { readonly reply?: unknown }
  return {
    token: settings.secret('bot_token', TOKEN, 'write /token to @BotFather in Telegram'),
    apiRoot: settings.url('api_root', 'https://api.telegram.org', ['https', 'http']),
    pollSeconds: settings.integer('poll_seconds', 30, 1, 50),
    replaceWebhook: settings.flag('replace_webhook', false),
    chats: settings.texts('chats', CHAT, 100),
    answersAll: reply === 'all',
  }
}

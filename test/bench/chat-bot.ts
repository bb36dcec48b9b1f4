// What bridges are compared with: the client libraries of IRC and XMPP and the bare client of the ACP SDK, which keep nothing.
import { spawn } from 'node:child_process'
import { Readable, Writable } from 'node:stream'
import { client, methods, ndJsonStream, PROTOCOL_VERSION } from '@agentclientprotocol/sdk'
import { client as connectXmpp, type Element, xml } from '@xmpp/client'
import irc, { type Spoken } from 'irc-framework'
import { answer } from './child.js'

const agents: number[] = []
process.on('exit', () => {
  for (const pid of agents) process.kill(pid, 'SIGKILL')
})

/** Starts an agent; the returned function gives it a prompt and resolves with the text of the answer. */
async function startAgent(argv: readonly string[]): Promise<(prompt: string) => Promise<string>> {
  const [command = '', ...args] = argv
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'ignore'] })
  if (child.pid !== undefined) agents.push(child.pid)
  const stream = ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>)
  let text = ''
  const { agent } = client({ name: 'bench' })
    .onNotification(methods.client.session.update, ({ params: { update } }) => {
      if (update.sessionUpdate === 'agent_message_chunk' && update.content.type === 'text') text += update.content.text
    })
    .connect(stream)
  await agent.request(methods.agent.initialize, { protocolVersion: PROTOCOL_VERSION, clientCapabilities: {} })
  const { sessionId } = await agent.request(methods.agent.session.new, { cwd: '/', mcpServers: [] })
  return async prompt => {
    text = ''
    await agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: 'text', text: prompt }] })
    return text.trim()
  }
}

const handlers = {
  /** A bot that is in the channels and answers what is said to it. */
  async irc(port: number, nick: string, channels: readonly string[], argv: readonly string[]): Promise<void> {
    const prompt = await startAgent(argv)
    const bot = new irc.Client()
    bot.on('privmsg', async ({ target, message }: Spoken) => {
      if (!message.startsWith(`${nick}: `)) return
      bot.connection.write(`PRIVMSG ${target} :${await prompt(message.slice(nick.length + 2))}`)
    })
    bot.connect({ ...{ host: '127.0.0.1', port, nick, username: nick, gecos: nick }, auto_reconnect: false })
    await new Promise<void>(resolve => bot.once('registered', () => resolve()))
    for (const channel of channels) {
      const joined = new Promise<void>(resolve => bot.once('userlist', () => resolve()))
      bot.connection.write(`JOIN ${channel}`)
      await joined
    }
  },
  /** A bot that answers direct messages. */
  async xmpp(port: number, username: string, password: string, argv: readonly string[]): Promise<void> {
    const prompt = await startAgent(argv)
    const bot = connectXmpp({
      ...{ service: `xmpp://127.0.0.1:${port}`, domain: 'localhost', resource: 'bot' },
      credentials: (authenticate, mechanisms) =>
        authenticate({ username, password }, mechanisms.includes('PLAIN') ? 'PLAIN' : (mechanisms[0] ?? '')),
    })
    bot.on('error', () => {})
    bot.on('stanza', async (stanza: Element) => {
      const body = stanza.getChildText('body')
      if (!stanza.is('message') || body === null) return
      const text = await prompt(body)
      await bot.send(xml('message', { to: stanza.attrs.from, type: 'chat' }, xml('body', {}, text)))
    })
    await bot.start()
    await bot.send(xml('presence'))
  },
}
export type ChatBot = typeof handlers
answer(handlers)

// The agent of this package as a program: ACP on stdin and stdout, logs on stderr.
import { Readable, Writable } from 'node:stream'
import { agent, methods, ndJsonStream } from '@agentclientprotocol/sdk/unstable'
import { SvcAgent } from './agent.js'
import { settingsOf } from './settings.js'
import { reasonOf } from './text.js'

/** Parameters of the method that preceded the option `model`; some clients still use it. */
const modelParams = (params: unknown) => {
  const { sessionId, modelId } = (params ?? {}) as { sessionId?: unknown; modelId?: unknown }
  return { sessionId: String(sessionId), modelId }
}

async function main(): Promise<void> {
  Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false })
  process.on('unhandledRejection', error => console.error(`unhandled: ${reasonOf(error)}`))
  const own = new SvcAgent(settingsOf(process.env))
  const connection = agent({ name: 'svc-agent' })
    .onRequest(methods.agent.initialize, ({ params }) => own.initialize(params.clientCapabilities))
    .onRequest(methods.agent.session.new, ({ params }) => own.create(params))
    .onRequest(methods.agent.session.load, ({ params, client }) => own.load(params.sessionId, params, client))
    .onRequest(methods.agent.session.resume, ({ params }) => own.load(params.sessionId, params))
    .onRequest(methods.agent.session.fork, ({ params }) => own.fork(params.sessionId, params))
    .onRequest(methods.agent.session.close, ({ params }) => own.closeSession(params.sessionId))
    .onRequest(methods.agent.session.setMode, ({ params }) => own.setMode(params.sessionId, params.modeId))
    .onRequest(methods.agent.session.setConfigOption, ({ params }) =>
      own.setModel(params.sessionId, params.configId === 'model' ? params.value : undefined),
    )
    .onRequest('session/set_model', modelParams, async ({ params }) => {
      await own.setModel(params.sessionId, params.modelId)
      return {}
    })
    .onRequest(methods.agent.session.prompt, ({ params, client, signal }) => own.prompt(params, client, signal))
    // Handlers are tried in order, one tick each. Cancel comes after prompt, so that it cannot overtake a prompt sent before it.
    .onNotification(methods.agent.session.cancel, ({ params }) => own.cancel(params.sessionId))
    .connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>))
  // The end of stdin closes the connection. Without its client this process must exit by itself.
  await connection.closed
  await own.close()
  process.exit(0)
}

main().catch(error => {
  console.error(`svc-agent: ${reasonOf(error)}`)
  process.exit(1)
})

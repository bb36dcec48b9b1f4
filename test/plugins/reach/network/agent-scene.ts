import { auth, configuration, identity, selfService, settings, sidecars } from '../../../../plugins/index.js'
import { agentText } from '../../../fixtures/session-world.js'
import { ask } from '../../../kernel/http/doors.js'
import { openScene, type SceneOptions } from './scene.js'

/** A channel whose agents call by the sockets of their sessions. */
export async function openAgents({ plugins = [], ...options }: SceneOptions = {}) {
  const scene = await openScene({
    ...options,
    plugins: [auth, configuration, identity, settings, sidecars, selfService, ...plugins],
    listen: ['socket'],
  })
  /** The socket of a session, and requests by it. */
  const agent = async (name: string) => {
    const socketPath =
      /SVC_SOCKET=(.*)/.exec(agentText(await scene.prompt(scene.at(name), 'env SVC_SOCKET')))?.[1] ?? ''
    return {
      socketPath,
      get: (url: string) => ask({ socketPath }, url),
      post: (url: string, body: object) => ask({ socketPath }, url, { method: 'POST', body }),
    }
  }
  return { ...scene, agent }
}

import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { withExamples } from '../../cli/document-examples.js'
import { automation, inTree, notifications, settings, tasks } from '../../plugins/index.js'
import { buildDocument } from '../../plugins/platform/openapi/document.js'
import { openWorld } from '../fixtures/session-world.js'

interface Document {
  readonly paths: Readonly<
    Record<
      string,
      Readonly<
        Record<
          string,
          {
            readonly requestBody?: { readonly content: Readonly<Record<string, { readonly example: unknown }>> }
            readonly responses: Readonly<Record<string, unknown>>
          }
        >
      >
    >
  >
}

test('a daemon accepts the example of every body that creates something', async () => {
  const routes = inTree.flatMap(plugin => plugin.surface.routes ?? [])
  const document = await buildDocument(routes, '')
  withExamples(document as never)
  const { paths } = document as Document
  const world = await openWorld({ plugins: [settings, automation, tasks, notifications] })
  const statuses: Record<string, number> = {}
  const refused: string[] = []
  try {
    for (const [at, { post }] of Object.entries(paths)) {
      const example = post?.requestBody?.content['application/json']?.example
      if (!post || example === undefined || at.includes('{') || !('201' in post.responses)) continue
      // The folder of the example is on no machine.
      const body = JSON.parse(JSON.stringify(example).replaceAll('/home/ada/app', world.root))
      const reply = await world.kernel.request('POST', at, body)
      if (reply.body?.code === 'route_not_found') continue
      statuses[at] = reply.status
      if (reply.status === 400) refused.push(`${at}: ${JSON.stringify(body)}: ${JSON.stringify(reply.body)}`)
    }
  } finally {
    await world.close()
  }
  assert.equal(refused, [])
  const { '/api/agents': agent, '/api/tasks': task, '/api/automation/jobs': job } = statuses
  assert.equal([agent, task, job], [201, 201, 201], JSON.stringify(statuses))
})

test.run()

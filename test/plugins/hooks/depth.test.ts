import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { openScene } from './scene.js'

/** A program that makes a session, as the command line does it in a hook. */
const MAKES = (home: string, workspace: string, header: string) => `#!${process.execPath}
const { request } = require('node:http')
const body = JSON.stringify({ workspace: ${JSON.stringify(workspace)}, agent_name: 'plain' })
const headers = { 'content-type': 'application/json', ${header} }
request({ socketPath: ${JSON.stringify(`${home}/daemon.sock`)}, method: 'POST', path: '/api/sessions', headers })
  .on('response', response => response.resume())
  .end(body)
`

for (const [what, header, sessions] of [
  ['nests as deep as hooks may', `'x-svc-hook-depth': process.env.SVC_HOOK_DEPTH`, 3],
  ['gains nothing by a depth that is none', `'x-svc-hook-depth': '-1'`, 1],
  ['is known by its descent when it says nothing', '', 3],
  ['is not believed to be less deep than it is', `'x-svc-hook-depth': '1'`, 3],
] as const)
  test(`what the program of a hook asks the daemon for ${what}`, async () => {
    const scene = await openScene({}, { listen: ['socket'] })
    await scene.agent('plain')
    const command = await scene.program('again.cjs', MAKES(scene.home, scene.workspaceId, header))
    await scene.configure({ again: { event: 'session.pre_create', mode: 'sync', command, timeout: '60s' } })
    await scene.session('plain')
    const { sessions: made } = (await scene.kernel.request('GET', '/api/sessions')).body
    assert.is(made.length, sessions)
    await scene.close()
  })

test.run()

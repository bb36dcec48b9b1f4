import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Plugin, PluginKernel } from '../../../../kernel/plugin.js'
import daemon from '../../../../plugins/desk/daemon/index.js'
import windowManager from '../../../../plugins/desk/window-manager/index.js'
import workspaces from '../../../../plugins/desk/workspaces/index.js'
import resources from '../../../../plugins/platform/resources/index.js'
import { outcome, scene } from './scene.js'

let db: PluginKernel['db']
const apply: Plugin['apply'] = kernel => {
  db = kernel.db
  return windowManager.apply(kernel)
}
const opened: Plugin = Object.create(windowManager, { apply: { value: apply } })

for (const [what, sql] of [
  ['document', "UPDATE window_manager_document SET body = '{' WHERE workspace_id = ?"],
  ['history step', "UPDATE window_manager_history SET entry = 'nothing' WHERE workspace_id = ?"],
] as const) {
  test(`a damaged ${what} affects no other workspace, and another layout replaces it`, async () => {
    const { host, workspace, base, command, state, end } = await scene({
      plugins: [daemon, resources, workspaces, opened],
    })
    const [hurt, well] = [await workspace('hurt'), await workspace('well')]
    for (const id of [hurt, well]) for (const app of ['mail', 'code']) await command(id, 'window.open', { app })
    const saved = (await host.request('GET', `${base(well)}/layout`)).body
    await db.tx(t => void t.run(sql, [hurt]))
    const read = await host.request('GET', base(hurt))
    assert.equal([outcome(read), read.body.current_revision], ['503 window_manager_unavailable', 2])
    assert.is(read.body.details.next, 'svc layout apply --file <layout>')
    assert.is((await state(well)).revision, 2)

    const document = { ...saved, workspace_id: hurt }
    const body = { command_id: 'layout.replace', payload: { document } }
    const put = (expected_revision: number) =>
      host.request('POST', `${base(hurt)}/commands`, { ...body, expected_revision })
    assert.is(outcome(await put(1)), '409 window_manager_revision_conflict')
    assert.is((await host.request('GET', base(hurt))).status, 503, 'what was refused changed nothing')
    assert.equal([outcome(await put(2)), (await state(hurt)).revision], ['200', 3])
    assert.equal(Object.keys((await state(hurt)).windows), Object.keys(saved.windows))
    assert.is(outcome(await command(hurt, 'layout.undo')), '200')
    assert.equal((await state(hurt)).windows, {})
    await end()
  })
}

test.run()

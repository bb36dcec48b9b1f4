import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { pluginFolders } from '../../scripts/plugin-folders.mjs'

test('plugins are folders with an index.ts, two levels down, with unique names', () => {
  const root = mkdtempSync(path.join(os.tmpdir(), 'svc-folders-'))
  const put = (file: string) => {
    mkdirSync(path.join(root, path.dirname(file)), { recursive: true })
    writeFileSync(path.join(root, file), '')
  }
  try {
    assert.equal(pluginFolders(root), [])
    for (const file of [
      'work/tasks/index.ts',
      'work/tasks/runs/retry.ts',
      'work/drafts/note.ts',
      'desk/windows/index.ts',
    ])
      put(`plugins/${file}`)
    put('plugins/index.ts')
    assert.equal(pluginFolders(root), [
      { name: 'windows', group: 'desk', folder: 'plugins/desk/windows', files: ['index.ts'] },
      { name: 'tasks', group: 'work', folder: 'plugins/work/tasks', files: ['index.ts', 'runs/retry.ts'] },
    ])
    put('plugins/desk/tasks/index.ts')
    assert.throws(() => pluginFolders(root), 'plugins/desk/tasks and plugins/work/tasks have one name')
  } finally {
    rmSync(root, { recursive: true })
  }
})

test.run()

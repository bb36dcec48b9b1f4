import { chmod, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { readDotEnv } from '../../../../plugins/desk/settings/dot-env.js'
import { StartedDaemon } from '../../../../testing/daemon.js'
import { codeOf, inFolder } from '../../../kernel/store/harness.js'

test('variables are read with quotes and comments, without expansion', () =>
  inFolder(async folder => {
    const file = path.join(folder, '.env')
    assert.equal(await readDotEnv(folder), {})
    await writeFile(file, '# mine\nA=1\nexport B = two words \nC="$A # x"\n\nD=\n', { mode: 0o600 })
    assert.equal(await readDotEnv(folder), { A: '1', B: 'two words', C: '$A # x', D: '' })
    await writeFile(file, 'A=1\nnot a variable, secret\n')
    const error = await readDotEnv(folder).catch(error => error)
    assert.is(error.code, 'env_file_invalid')
    assert.match(error.message, /line 2/)
    assert.not.match(error.message, /secret/)
    await writeFile(file, 'A=1\n')
    await chmod(file, 0o640)
    assert.is(await codeOf(() => readDotEnv(folder)), 'env_file_open')
  }))

test('variables of the home are redacted in the log; a world-readable file is not read and reported by doctor', async () => {
  const daemon = await StartedDaemon.start()
  const file = path.join(daemon.home, '.env')
  const secret = 'canary-4711-canary'
  try {
    await writeFile(file, `MY_TOKEN=${secret}\n`, { mode: 0o600 })
    await daemon.restart()
    const { body } = await daemon.request('GET', `/api/settings/keys/${secret}`)
    assert.match((body as { error: string }).error, /there is no setting/)
    assert.not.match(JSON.stringify(body) + daemon.output, new RegExp(secret))
    assert.match(JSON.stringify(body), /\[redacted:MY_TOKEN\]/)
    await chmod(file, 0o644)
    await daemon.restart()
    const doctor = await daemon.request('GET', '/api/doctor?only=home.env')
    const [item] = (doctor.body as { items: { code: string; message: string }[] }).items
    assert.is(item?.code, 'secrets_perms_wrong')
    assert.match(item?.message ?? '', /permissions 644/)
  } finally {
    await daemon.stop()
  }
})

test.run()

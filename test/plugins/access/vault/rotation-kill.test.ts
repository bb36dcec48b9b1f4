// proof, timeout: 240s
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { startDaemon } from '../../../../testing/index.js'
import { chance as chanceOf } from '../../../proofs/library/chance.js'
import { firstSeed } from '../../../proofs/library/seed.js'

const KILLS = Number(process.env.KILLS ?? 12)
const MOST_KILLS = 10 * KILLS
const SECRETS = 1000
const AT_ONCE = 32

test(`a rotation killed ${KILLS} times loses no secret and is finished`, async () => {
  const seed = firstSeed()
  const chance = chanceOf('rotation', seed)
  const daemon = await startDaemon()
  const key = path.join(daemon.home, 'vault.key')
  const next = `${key}.next`
  try {
    let stored = 0
    const lane = async () => {
      while (stored < SECRETS) {
        const at = stored++
        const body = { ref: `vault:mcp/many/n${at}`, secret_value: `value-number-${at}` }
        assert.is((await daemon.request('PUT', '/api/vault/secrets', body)).status, 200)
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, lane))
    const began = performance.now()
    assert.is((await daemon.request('POST', '/api/vault/rotate')).body.resealed, SECRETS)
    const whole = performance.now() - began
    const hit = { before: 0, within: 0, after: 0 }
    // Chance decides where a kill comes, and a first rotation that took long makes most of them come late: at least one has to meet one.
    for (let kill = 0; kill < KILLS || (hit.within === 0 && kill < MOST_KILLS); kill++) {
      const first = readFileSync(key, 'utf8')
      daemon.request('POST', '/api/vault/rotate').catch(() => {})
      await new Promise(resolve => setTimeout(resolve, chance() * whole * 1.1))
      await daemon.kill('SIGKILL')
      hit[existsSync(next) ? 'within' : readFileSync(key, 'utf8') === first ? 'before' : 'after']++
      await daemon.restart()
      const { body } = await daemon.request('GET', '/api/vault/secrets')
      const lost = body.secrets.filter(({ present }: { present: boolean }) => !present)
      assert.equal([body.secrets.length, lost], [SECRETS, []], `seed ${seed}, kill ${kill}`)
      for (const end = performance.now() + 30_000; existsSync(next); ) {
        assert.ok(performance.now() < end, `seed ${seed}, kill ${kill}: the rotation is not finished`)
        await new Promise(resolve => setTimeout(resolve, 20))
      }
      assert.equal((await daemon.request('GET', '/api/doctor?only=vault')).body.items[0].code, 'vault_ok')
    }
    assert.ok(hit.within > 0, `no kill came within a rotation: ${JSON.stringify(hit)}`)
  } finally {
    await daemon.stop()
  }
})

test.run()

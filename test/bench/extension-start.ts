// Starts a kernel with every plugin on the home that is its argument, and ends: with `loaded` as second argument once all of
// its extensions are loaded, else as soon as it answers.
import { readdirSync } from 'node:fs'
import path from 'node:path'
import { createKernel } from '../../kernel/index.js'
import { critical, inTree } from '../../plugins/index.js'
import { pause } from './measure.js'

const [home = '', until] = process.argv.slice(2)
const kernel = await createKernel({ home, plugins: inTree, critical, env: process.env, listen: ['socket'] })
await kernel.inject({ method: 'GET', url: '/api/status/identity' })
const folders = readdirSync(path.join(home, 'extensions')).filter(name => !name.startsWith('.'))
const count = until === 'loaded' ? folders.length : 0
for (;;) {
  if (count === 0) break
  const { body } = await kernel.inject({ method: 'GET', url: '/api/extensions' })
  const active = JSON.parse(body).extensions.filter(({ state }: { state: string }) => state === 'active')
  if (active.length === count) break
  await pause(5)
}
process.exit(0)

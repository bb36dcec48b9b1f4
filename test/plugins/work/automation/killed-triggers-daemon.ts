// A daemon that a test kills: node --import tsx killed-triggers-daemon.ts HOME LEDGER. It has a trigger on the end of runs of a
// job and a webhook, runs the job again and again, and writes its port and the path of the webhook into the ledger.
import { appendFileSync } from 'node:fs'
import { bench, hourly } from './bench.js'
import { completed } from './fake-sessions.js'

const [home = '', ledger = ''] = process.argv.slice(2)
const write = (...words: readonly (string | number)[]) => appendFileSync(ledger, `${words.join(' ')}\n`)
const limits = { max_concurrent_jobs: 1000, default_fire_limit: { max: 100_000, window: '1h' } }
const b = await bench({
  home,
  config: { http: { port: 0 }, automation: limits },
  listen: ['tcp'],
  env: { CI_SECRET: 'a secret of this test' },
  answer: () => completed,
})
const common = { agent_name: 'report', scope: 'workspace', workspace_id: b.workspace, prompt: 'x' }
const { triggers } = (await b.request('GET', '/api/automation/triggers')).body
if (triggers.length === 0) {
  await b.put('demo', hourly())
  const onEnd = { name: 'on end', event: 'automation.run.completed', filter: { 'data.job_id': 'demo' } }
  await b.request('POST', '/api/automation/triggers', { ...common, ...onEnd })
  const hook = { name: 'hook', event: 'webhook', webhook_secret_ref: 'env:CI_SECRET' }
  await b.request('POST', '/api/automation/triggers', { ...common, ...hook })
}
const hook = (await b.request('GET', '/api/automation/triggers?event=webhook')).body.triggers[0]
const tcp = b.kernel.host.listeners().find(({ door }) => door === 'tcp')
write('ready', tcp?.door === 'tcp' ? tcp.port : 0, hook.webhook_endpoint)
for (;;) {
  await b.request('POST', '/api/automation/jobs/demo/trigger')
  await new Promise(resolve => setTimeout(resolve, 10))
}

import assert from 'node:assert/strict'
import { inspector } from './packages.js'
import { type Step, SVC, type Wire, type World } from './world.js'

/** The inspector as an MCP client of `svc mcp serve`. */
export function inspectorSteps(world: World): readonly Step[] {
  /** What the inspector prints for one method, as JSON. */
  const inspect = async (serve: readonly string[], ...args: string[]): Promise<Wire> => {
    const target = [process.execPath, SVC, 'mcp', 'serve', ...serve]
    const pairs = ['SVC_HOME', 'HOME', 'PATH'].flatMap(name => ['-e', `${name}=${world.env[name]}`])
    // What follows `--` is the server; the rest belongs to the inspector.
    const ran = await world.program([...inspector(), ...pairs, '--format', 'json', '-q', ...args, '--', ...target])
    assert.equal(ran.code, 0, `inspector ${args.join(' ')}: ${ran.code}\n${ran.stdout}${ran.stderr}`)
    return JSON.parse(ran.stdout).result
  }
  const namesOf = ({ tools }: Wire) => (tools as { name: string }[]).map(({ name }) => name)
  return [
    {
      what: 'the inspector lists the tools that only read, and judges their schemas',
      async run() {
        const { tools } = await inspect([], '--method', 'tools/list', '--strict')
        assert.ok(tools.length > 5, JSON.stringify(tools).slice(0, 500))
        for (const { name, annotations } of tools) assert.equal(annotations?.readOnlyHint, true, name)
        return `${tools.length} tools`
      },
    },
    {
      what: 'it calls one of them',
      async run() {
        const { workspace } = await world.ask('POST', '/api/workspaces/resolve', { path: world.makeRepository('seen') })
        const result = await inspect([], '--method', 'tools/call', '--tool-name', 'service__workspace_list')
        assert.match(JSON.stringify(result), new RegExp(workspace.id))
        return `the answer names ${workspace.id}`
      },
    },
    {
      what: 'of tools with another risk it sees none unless they are wanted',
      async run() {
        const read = namesOf(await inspect([], '--method', 'tools/list'))
        const all = namesOf(await inspect(['--all'], '--method', 'tools/list', '--strict'))
        assert.ok(!read.includes('service__workspace_remove') && all.includes('service__workspace_remove'))
        return `${read.length} of ${all.length}`
      },
    },
    {
      what: 'through the daemon it calls a tool of server-everything',
      async run() {
        const args = ['--method', 'tools/call', '--tool-name', 'mcp__everything__echo', '--tool-arg', 'message=through']
        const result = await inspect(['--risk', 'open_world'], ...args)
        assert.match(JSON.stringify(result), /through/)
        return result.content[0].text
      },
    },
  ]
}

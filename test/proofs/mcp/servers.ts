import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { EVERYTHING, FILESYSTEM, type Step, type Wire, type World } from './world.js'

/** Servers of the home: one on standard input and output, and one with a folder of its own. */
export const officialServers = (folder: string) => ({
  everything: { command: process.execPath, args: [EVERYTHING] },
  filesystem: { command: process.execPath, args: [FILESYSTEM, folder] },
})

/** The official servers through the registry of tools. */
export function serverSteps(world: World, folder: string): readonly Step[] {
  const call = async (tool: string, input: object): Promise<Wire> =>
    (await world.ask('POST', `/api/tools/${tool}/invoke`, { input })).result
  const idsOf = async (server: string) => {
    const { mcp_server: shown } = await world.ask('GET', `/api/settings/mcp-servers/${server}?probe=true`)
    assert.equal(shown.refused_tools, undefined, JSON.stringify(shown.refused_tools))
    return (shown.tools as { id: string }[]).map(({ id }) => id)
  }
  return [
    {
      what: 'server-everything gives text, structured content, a resource and an image',
      async run() {
        const ids = await idsOf('everything')
        const of = (words: string) => ids.find(id => id.includes(words)) ?? assert.fail(`${words}: ${ids}`)
        assert.match(JSON.stringify(await call(of('echo'), { message: 'hello' })), /hello/)
        const weather = await call(of('structured'), { location: 'New York' })
        assert.equal(typeof weather.structured?.temperature, 'number', JSON.stringify(weather))
        const kinds = (result: Wire) => (result.content as { type: string }[]).map(({ type }) => type)
        assert.ok(kinds(await call(of('image'), {})).includes('image'))
        const link = await call(of('resource_reference'), { resourceType: 'Text', resourceId: 1 })
        assert.ok(kinds(link).includes('resource'), JSON.stringify(link))
        return `${ids.length} tools`
      },
    },
    {
      what: 'server-filesystem writes and reads in its folder, and refuses what lies outside',
      async run() {
        const ids = await idsOf('filesystem')
        const file = path.join(folder, 'note.txt')
        await call('mcp__filesystem__write_file', { path: file, content: 'written through the registry' })
        assert.equal(fs.readFileSync(file, 'utf8'), 'written through the registry')
        const read = await call('mcp__filesystem__read_text_file', { path: file })
        assert.match(JSON.stringify(read.content), /through the registry/)
        const outside = await call('mcp__filesystem__read_text_file', { path: '/etc/passwd' })
        assert.equal(outside.is_error, true, JSON.stringify(outside))
        return `${ids.length} tools`
      },
    },
    {
      what: 'a wrong input is refused before the server sees it',
      async run() {
        const { status, text } = await world.request(
          'socket',
          'POST',
          '/api/tools/mcp__filesystem__write_file/invoke',
          {
            input: { path: 7 },
          },
        )
        assert.ok(status === 400 || status === 422, `${status} ${text}`)
        assert.match(text, /schema_invalid/)
        return JSON.parse(text).code
      },
    },
  ]
}

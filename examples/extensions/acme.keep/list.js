/** `svc acme keep list` */
export async function run({ client, out }) {
  const { kept } = await client.request('GET', '/api/ext/acme.keep/kept')
  if (out.json) return out.value(kept)
  for (const { workspace, why } of kept) out.line(`${workspace}  ${why}`)
}

// Loaded into the processes of tests, except proofs: a sync of a file only looks whether its handle is open. What a killed process
// wrote stays in the memory of the system, so that only a loss of power shows the difference, and most of a start is waiting for
// the disk. Tests about syncs give a disk of their own; daemons in other processes sync.
import fs from 'node:fs'
import { open } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'

fs.fsync = (handle, done) => fs.fstat(handle, error => done(error))
fs.fdatasync = fs.fsync
fs.fsyncSync = handle => void fs.fstatSync(handle)
fs.fdatasyncSync = fs.fsyncSync
const file = await open(process.execPath)
const FileHandle = Object.getPrototypeOf(file)
FileHandle.sync = async function () {
  await this.stat()
}
FileHandle.datasync = FileHandle.sync
await file.close()
syncBuiltinESMExports()

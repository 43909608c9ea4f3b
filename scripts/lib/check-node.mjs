// Imported before everything else, and written so that old versions of Node can read it.
const [major, minor] = process.versions.node.split(".").map(Number);

if (major < 20 || (major === 20 && minor < 19)) {
  console.error(
    `plenum: Node ${process.versions.node} is too old: install Node 20.19 or newer (https://nodejs.org), then try again.`,
  );
  process.exit(1);
}

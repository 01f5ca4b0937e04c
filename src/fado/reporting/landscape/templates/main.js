// Drawing it all, once.

const content = JSON.parse(document.getElementById("data").textContent);
drawTexts(content);
drawLandscapes(content);
drawBest(content);
drawAreas(content);
drawGroups(content);
drawErrors(content);
drawSettings(content);
